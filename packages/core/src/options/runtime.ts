/** The runtime that Requeue needs. npm only warns where it is older. */
import { ConfigurationError } from "./ConfigurationError.ts"

/** Functions of the language that an older Node.js lacks. Other runtimes count by what they have, not by their version. */
const needed = (): ReadonlyArray<unknown> => [Reflect.get(Promise, "withResolvers"), Reflect.get(URL, "parse")]

/**
 * Checks that Node.js is new enough. Without it, a later call would fail with an error of the language.
 *
 * @throws ConfigurationError where Node.js is too old
 */
export const check = (): void => {
  if (needed().every((each) => typeof each === "function")) return
  throw new ConfigurationError({
    field: "node",
    detail: `Requeue needs Node.js 22.19 or newer, and this is ${process.version}`,
    remedy: "Run the program on a newer Node.js"
  })
}
