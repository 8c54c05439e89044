/** The error of a config file. */
import { BrokerUrl } from "@requeue/core/port"
import * as Data from "effect/Data"
import type * as StrictSchema from "./StrictSchema.ts"

/** Shows a path as `queues.orders.retry` or `brokers["a.b"].url`. */
const show = (path: StrictSchema.Problem["path"]): string =>
  path
    .map((key, index) => {
      if (typeof key === "number") return `[${key}]`
      return /^[\w$-]+$/.test(key) ? `${index === 0 ? "" : "."}${key}` : `[${JSON.stringify(key)}]`
    })
    .join("")

const line = ({ detail, path, remedy }: StrictSchema.Problem): string =>
  `${path.length === 0 ? "" : `${show(path)}: `}${detail}${remedy === undefined ? "" : `. ${remedy}`}`

const withoutPassword = <Key extends string | number>(key: Key) =>
  typeof key === "string" ? BrokerUrl.withoutPassword(key) : key

/**
 * The error of a config file that cannot be used. It has all problems of the file, each with its path and its remedy.
 */
export class ConfigFileError extends Data.TaggedError("ConfigFileError")<{
  /** The file's name as the program gave it, or its path relative to the working directory. */
  readonly file: string
  /** At least one problem. */
  readonly problems: ReadonlyArray<StrictSchema.Problem>
}> {
  constructor({ file, problems }: { readonly file: string; readonly problems: ReadonlyArray<StrictSchema.Problem> }) {
    super({
      file: BrokerUrl.withoutPassword(file),
      problems: problems.map((problem) => ({ ...problem, path: problem.path.map(withoutPassword) }))
    })
  }

  override get message() {
    return this.problems.map((problem) => `${this.file}: ${line(problem)}`).join("\n")
  }
}
