/**
 * What the tests of every package have in common: time limits that only end what hangs, on a machine that is slow and busy
 * as well; and one worker for many files, because most of a file's time would be the loading of modules.
 */
export default {
  test: { isolate: false, testTimeout: 120_000, hookTimeout: 300_000, expect: { poll: { timeout: 60_000 } } }
}
