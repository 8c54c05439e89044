/** Verdicts on the results of programs, one line each. */
let failures = 0

/** The number of bad verdicts so far. */
export const failed = () => failures

/** Prints a line; `wrong` returns the error of a result, or undefined. */
export const verdict = async (what, running, wrong) => {
  const result = await running
  const reason = wrong(result)
  if (reason === undefined) return console.log(`ok      ${what}`)
  failures++
  const { code, error, stderr, stdout } = result
  console.log(`FAILED  ${what}: ${reason} (exit code ${code})\n${stdout}${code === undefined ? error.message : stderr}`)
}

/** It ends well, prints the expected text, and warns only as expected. */
export const prints =
  (expected, warning = /^$/) =>
  ({ code, stderr, stdout }) => {
    if (code !== 0) return "it ended badly"
    if (!warning.test(stderr)) return "it warned"
    return expected.test(stdout) ? undefined : `it did not print ${expected}`
  }

/** It ends with this exit code, and prints this on standard error. */
export const refuses =
  (code, expected) =>
  ({ code: found, stderr }) => {
    if (found !== code) return `it did not end with exit code ${code}`
    return expected.test(stderr) ? undefined : `it did not say ${expected}`
  }
