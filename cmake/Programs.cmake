# SPDX-License-Identifier: Apache-2.0
# The command line and the examples. The examples see only the public headers.
file(GLOB cli_sources CONFIGURE_DEPENDS src/cli/*.c)
if(cli_sources)
  add_executable(mtf_program ${cli_sources})
  target_link_libraries(mtf_program PRIVATE mtf_static)
  set_target_properties(mtf_program PROPERTIES OUTPUT_NAME mtf)
endif()

file(GLOB example_sources CONFIGURE_DEPENDS examples/*.c)
foreach(source ${example_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} ${source})
  target_compile_options(example_${name} PRIVATE -Wall -Wextra -Wshadow -Wconversion ${MTF_WERROR})
  target_include_directories(example_${name} PRIVATE ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(example_${name} PRIVATE $<TARGET_FILE:mtf_static> mtf_dependencies)
  if(MTF_SANITIZE)
    target_link_options(example_${name} PRIVATE -fsanitize=${MTF_SANITIZE})
  endif()
  add_dependencies(example_${name} mtf_static)
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
endforeach()

file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
foreach(source ${bench_sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} ${source})
  target_link_libraries(bench_${name} PRIVATE mtf_static)
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
endforeach()

# One loadable module per MPI family: the library itself never links MPI.
foreach(flavor ${mtf_mpi_flavors})
  string(TOUPPER ${flavor} upper)
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/comm/module/mpi.c)
    set(out ${CMAKE_BINARY_DIR}/libmtf_${flavor}.so)
    add_custom_command(OUTPUT ${out}
      COMMAND ${MPICC_${upper}} -std=c17 -O2 -g -D_GNU_SOURCE -Wall -Wextra -Wshadow -shared -fPIC
              -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_SOURCE_DIR}/include
              ${CMAKE_SOURCE_DIR}/src/comm/module/mpi.c -o ${out}
      DEPENDS ${CMAKE_SOURCE_DIR}/src/comm/module/mpi.c ${CMAKE_SOURCE_DIR}/src/comm/transport.h
              ${CMAKE_SOURCE_DIR}/src/comm/comm.h
      VERBATIM)
    add_custom_target(mtf_module_${flavor} ALL DEPENDS ${out})
  endif()
endforeach()

# What makes pages of docs/ from the rows; it sees the inside.
add_executable(ops_doc ${CMAKE_SOURCE_DIR}/tools/ops_doc.c)
target_link_libraries(ops_doc PRIVATE mtf_static)
target_include_directories(ops_doc PRIVATE ${CMAKE_SOURCE_DIR}/src)
set_target_properties(ops_doc PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools)
