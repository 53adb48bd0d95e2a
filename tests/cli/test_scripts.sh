#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scripts around the program: the demo takes a text of any name, from any folder; where there is
# no apt, setup says what to install.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1

# A copy of the tree's front, with a program that says how it was called.
mkdir -p tree/scripts tree/build
cp "$MTF_SOURCE_DIR/scripts/demo" tree/scripts/
cat >tree/build/mtf <<'E2'
#!/bin/sh
printf '<%s>' "$@"
echo
[ "$1" != train ] || printf '<%s>' "$@" >called
E2
chmod +x tree/build/mtf
name="it's \"a\" \$text.txt"
for way in option variable; do
    rm -f tree/called
    if [ $way = option ]; then
        quiet tree/scripts/demo --text "$name"
    else
        TEXT=$name quiet tree/scripts/demo
    fi
    grep -qF "<--set><data.train=$work/$name>" tree/called || fail "$way: $(cat tree/called)"
    tail -n 1 out >last
    grep -Eq '^([A-Z_a-z]+=1 )+mpirun -n 4 build/mtf train runs/[^ ]*/config.yaml --out runs/[^ ]*-mpi$' \
        last || fail "the last line: $(cat last)"
done
cd tree && quiet scripts/demo --text plain.txt && cd .. || exit 1
grep -qF "<data.train=plain.txt>" tree/called || fail "a text beside the demo: $(cat tree/called)"
expect 2 tree/scripts/demo --txet plain.txt
expect_text "unknown option '--txet'" err

# make hands a name over as it is, and PREFIX with spaces too.
cp "$MTF_SOURCE_DIR/Makefile" tree/
printf '#!/bin/sh\n' >tree/scripts/setup && chmod +x tree/scripts/setup
mkdir programs
printf '#!/bin/sh\nfor a; do printf "<%%s>" "$a"; done; echo\n' >programs/cmake && chmod +x programs/cmake
PATH=$work/programs:$PATH quiet make -s -C tree demo TEXT="$work/it's \"a\" text.txt"
grep -qF "<data.train=$work/it's \"a\" text.txt>" tree/called || fail "make: $(cat tree/called)"
PATH=$work/programs:$PATH quiet make -s -C tree install PREFIX="/a b"
expect_text "<--prefix></a b>" out

# No apt: the list, and how to go on.
mkdir bare
for program in bash env; do ln -s "$(command -v $program)" bare/; done
status=$(PATH=$work/bare bash "$MTF_SOURCE_DIR/scripts/setup" 2>err >out; echo $?)
[ "$status" = 1 ] || fail "setup without apt ended with $status"
for text in "no apt-get" gcc cmake libyaml-dev "cmake --build build"; do expect_text "$text" err; done
exit 0
