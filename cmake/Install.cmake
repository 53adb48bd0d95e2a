# SPDX-License-Identifier: Apache-2.0
install(TARGETS mtf_static mtf_shared
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/mtf DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET mtf_program)
  install(TARGETS mtf_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
foreach(flavor ${mtf_mpi_flavors})
  install(FILES ${CMAKE_BINARY_DIR}/libmtf_${flavor}.so
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/mtf OPTIONAL)
endforeach()
set(mtf_private_libs "-lyaml -ljansson -lpthread -ldl -lm")
if(ONEDNN_LIBRARY)
  string(APPEND mtf_private_libs " -ldnnl")
endif()
# Relative to the file itself, so that `cmake --install --prefix` may name any folder.
file(RELATIVE_PATH mtf_prefix_from_pc /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/mtf.pc.in mtf.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mtf.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
