/* SPDX-License-Identifier: Apache-2.0 */
#include "train/signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t pending;

static void on_signal(int number)
{
    if (pending) _exit(128 + number);
    pending = number;
}

void signals_install(void)
{
    struct sigaction act;
    memset(&act, 0, sizeof act);
    act.sa_handler = on_signal;
    act.sa_flags = SA_RESTART;
    sigemptyset(&act.sa_mask);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    signal(SIGXFSZ, SIG_IGN);
}

int signals_pending(void)
{
    return pending;
}
