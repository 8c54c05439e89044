/** Verdicts on what programs came to, a line each. */
let failures = 0

/** Verdicts that were bad so far. */
export const failed = () => failures

/** Prints a line; `wrong` says what is wrong with a result, or answers undefined. */
export const verdict = async (what, running, wrong) => {
  const result = await running
  const reason = wrong(result)
  if (reason === undefined) return console.log(`ok      ${what}`)
  failures++
  const { code, error, stderr, stdout } = result
  console.log(`FAILED  ${what}: ${reason} (exit code ${code})\n${stdout}${code === undefined ? error.message : stderr}`)
}

/** It ends well, prints what is expected, and warns of nothing but what is expected. */
export const prints =
  (expected, warning = /^$/) =>
  ({ code, stderr, stdout }) => {
    if (code !== 0) return "it ended badly"
    if (!warning.test(stderr)) return "it warned"
    return expected.test(stdout) ? undefined : `it did not print ${expected}`
  }

/** It ends with this exit code, and says this on standard error. */
export const refuses =
  (code, expected) =>
  ({ code: found, stderr }) => {
    if (found !== code) return `it did not end with exit code ${code}`
    return expected.test(stderr) ? undefined : `it did not say ${expected}`
  }
