/* SPDX-License-Identifier: Apache-2.0 */
/* A library that takes SIGSEGV for itself as soon as it is loaded. */
#include <signal.h>
#include <unistd.h>

static void report_and_die(int number) {
  static const char text[] = "thief: caught a signal\n";
  ssize_t written = write(2, text, sizeof text - 1);
  (void)written;
  signal(number, SIG_DFL);
  raise(number);
}

__attribute__((constructor)) static void take(void) {
  signal(SIGSEGV, report_and_die);
  /* Long enough for other threads to need the handler that was there. */
  usleep(500 * 1000);
}

int thief_answer(void) { return 42; }
