/**
 * What the tests of every package have in common: time limits that a machine which is slow and busy keeps as well, and
 * one worker for many files, because most of a file's time would be the loading of modules.
 */
export default { test: { isolate: false, testTimeout: 120_000, hookTimeout: 300_000 } }
