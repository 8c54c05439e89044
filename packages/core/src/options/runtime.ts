/** Checks the runtime's version, because npm only warns. */
import { ConfigurationError } from "./ConfigurationError.ts"

/** Functions that an older Node.js lacks. Other runtimes are judged by features, not by version. */
const needed = (): ReadonlyArray<unknown> => [Reflect.get(Promise, "withResolvers"), Reflect.get(URL, "parse")]

/**
 * Checks that Node.js is new enough. An older version would fail later, with "is not a function".
 *
 * @throws ConfigurationError if Node.js is too old
 */
export const check = (): void => {
  if (needed().every((each) => typeof each === "function")) return
  throw new ConfigurationError({
    field: "node",
    detail: `Requeue needs Node.js 22.19 or newer, and this program runs on ${process.version}`,
    remedy: "Run the program on a newer Node.js"
  })
}
