/** Classifiers decide whether a failed message may be retried, and whether the failure counts. */
import * as OptionKind from "../options/OptionKind.ts"
import * as OptionNames from "../options/OptionNames.ts"
import * as Thenable from "../message/Thenable.ts"
import type { Failure } from "./Failure.ts"

/**
 * The consequence of a failure for its message:
 *
 * - `retry`: the policy decides, and the failure counts towards consumer backoff.
 * - `retry-uncounted`: the policy decides, and the failure does not count towards consumer backoff.
 * - `dead-letter`: the message is dead-lettered at once, with reason `permanent`.
 * - `drop`: the message is removed without a dead letter.
 */
export type Classification = "retry" | "retry-uncounted" | "dead-letter" | "drop"

/** The failures that are not simply retried. See {@link Options}. */
export interface Classifier {
  readonly permanent: ReadonlyArray<string>
  readonly drop: ReadonlyArray<string>
  readonly uncounted: ReadonlyArray<string>
  readonly with: ((failure: Failure) => Classification | undefined) | undefined
}

/**
 * The options of {@link make}. The lists also apply to the causes of an error. `drop` overrides `permanent`, and both
 * override `uncounted`.
 */
// One by one, because editors show no docstrings of a mapped type.
export interface Options {
  /** Names or `_tag`s of errors that dead-letter their message at once. Default: none. */
  readonly permanent?: Classifier["permanent"] | undefined
  /** Names or `_tag`s of errors that remove their message without a dead letter. Default: none. */
  readonly drop?: Classifier["drop"] | undefined
  /** Names or `_tag`s of errors that do not count for consumer backoff. Default: none. */
  readonly uncounted?: Classifier["uncounted"] | undefined
  /** Function that classifies an error. If it returns `undefined`, the lists decide. Default: none. */
  readonly with?: Classifier["with"] | undefined
}

const names: OptionNames.Of<Options> = { permanent: true, drop: true, uncounted: true, with: true }

/**
 * Builds a classifier. By default only an error's own properties (see `Failure`) prevent a retry.
 *
 * @throws RangeError when an option is unknown or of the wrong kind
 *
 * @example
 * ```ts
 * import { Classifier, Failure } from "@requeue/core"
 *
 * const classifier = Classifier.make({ permanent: ["SyntaxError"] })
 * const cause = new SyntaxError("no JSON")
 * Classifier.classify(classifier, Failure.make(new Error("no order", { cause }), 0)) // => "dead-letter"
 * ```
 */
export const make = (options: Options = {}): Classifier => {
  OptionNames.check(`${call}: classify`, options, names)
  if (options.with !== undefined) {
    OptionNames.orThrow(OptionNames.argument(call, "classify.with", options.with, OptionKind.callback))
  }
  return {
    permanent: listOf("permanent", options.permanent),
    drop: listOf("drop", options.drop),
    uncounted: listOf("uncounted", options.uncounted),
    with: options.with
  }
}

const call = "RetryPolicy.make"

const listOf = (field: string, list: ReadonlyArray<string> = []): ReadonlyArray<string> => {
  OptionNames.orThrow(OptionNames.argument(call, `classify.${field}`, list, listKind))
  for (const [index, name] of list.entries()) {
    OptionNames.orThrow(OptionNames.argument(call, `classify.${field}[${index}]`, name, nameKind))
  }
  return list
}

const listKind: OptionKind.OptionKind = {
  ...OptionKind.list,
  expected: "an array of names of errors",
  remedy: (value) => {
    const name = nameOf(value)
    return name === undefined ? undefined : `Write [${JSON.stringify(name)}]`
  }
}

const nameKind: OptionKind.OptionKind = {
  ...OptionKind.text,
  expected: "the name of an error, as text",
  remedy: (value) => {
    const name = nameOf(value)
    return name === undefined ? undefined : `Write ${JSON.stringify(name)}`
  }
}

/** Returns the name that a text, a class or an error stands for. */
const nameOf = (value: unknown): string | undefined => {
  const name: unknown = typeof value === "string" ? value : Object(value).name
  return typeof name === "string" && /^[\w$.]{1,100}$/.test(name) ? name : undefined
}

/** Classifies a failure. It never throws, even if the classifier's function throws. */
export const classify = (self: Classifier, failure: Failure): Classification => {
  const own = validOf(() => self.with?.(failure))
  if (own !== undefined) return own
  const has = (tags: ReadonlyArray<string>) => failure.tags.some((tag) => tags.includes(tag))
  if (has(self.drop) || failure.tags.includes("DropError")) return "drop"
  if (has(self.permanent) || failure.permanent) return "dead-letter"
  return has(self.uncounted) ? "retry-uncounted" : "retry"
}

const classifications: ReadonlyArray<unknown> = ["retry", "retry-uncounted", "dead-letter", "drop"]

/** Returns the result of a user's function; `undefined` if it throws or returns anything else. */
const validOf = (classifyIt: () => Classification | undefined): Classification | undefined => {
  try {
    const classification = classifyIt()
    Thenable.onRejected(classification, () => {})
    return classifications.includes(classification) ? classification : undefined
  } catch {
    return undefined
  }
}
