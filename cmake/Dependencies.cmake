# SPDX-License-Identifier: Apache-2.0
# What is linked, and what each is for, stands in ARCHITECTURE.md.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
find_path(RANDOM123_INCLUDE Random123/philox.h REQUIRED)

add_library(mtf_dependencies INTERFACE)
target_include_directories(mtf_dependencies SYSTEM INTERFACE ${RANDOM123_INCLUDE})
target_link_libraries(mtf_dependencies INTERFACE PkgConfig::YAML PkgConfig::JANSSON
                      Threads::Threads ${CMAKE_DL_LIBS} m)

if(MTF_WITH_ONEDNN)
  find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.h)
  find_library(ONEDNN_LIBRARY dnnl)
endif()
if(ONEDNN_INCLUDE AND ONEDNN_LIBRARY)
  target_include_directories(mtf_dependencies SYSTEM INTERFACE ${ONEDNN_INCLUDE})
  target_link_libraries(mtf_dependencies INTERFACE ${ONEDNN_LIBRARY})
  target_compile_definitions(mtf_dependencies INTERFACE MTF_HAVE_ONEDNN)
  message(STATUS "oneDNN: ${ONEDNN_LIBRARY}")
else()
  message(STATUS "oneDNN: not found; matrix products use the kernels of our own")
endif()

# Both MPI families may be there at once; each gets a module of its own.
set(mtf_mpi_flavors "")
if(MTF_WITH_MPI)
  find_program(MPICC_OPENMPI NAMES mpicc.openmpi)
  find_program(MPICC_MPICH NAMES mpicc.mpich)
  if(MPICC_OPENMPI)
    list(APPEND mtf_mpi_flavors openmpi)
  endif()
  if(MPICC_MPICH)
    list(APPEND mtf_mpi_flavors mpich)
  endif()
endif()
message(STATUS "MPI: ${mtf_mpi_flavors}")
