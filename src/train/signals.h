/* SPDX-License-Identifier: Apache-2.0
 * SIGINT and SIGTERM end a run after its step; a second one ends the process at once. */
#ifndef TRAIN_SIGNALS_H
#define TRAIN_SIGNALS_H

/* Installs the handlers; SIGXFSZ is ignored, so that a file size limit is an error of a write. */
void signals_install(void);
/* The signal that asked this process to stop, or 0. */
int signals_pending(void);

#endif
