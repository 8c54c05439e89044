/** Dead letters as rows of a table, as text and as JSON. */
import { Delay } from "@requeue/core"
import { Metadata } from "@requeue/core/port"
import type { DeadLetters } from "@requeue/operations"
import * as Age from "./Age.ts"
import * as Body from "./Body.ts"
import * as LetterFilter from "./LetterFilter.ts"
import * as Printable from "./Printable.ts"

const time = (millis: number): string => new Date(millis).toISOString()

/** Returns a letter as a value for JSON, with times in ISO 8601. */
export const toJson = (letter: DeadLetters.DeadLetter) => {
  const { blocks, fairBy, headers, history, id, key, metadata, operation, origin, redrives } = letter
  return {
    id,
    ...(key === undefined ? {} : { key }),
    ...(blocks === undefined ? {} : { blocks }),
    ...(fairBy === undefined ? {} : { fairBy }),
    body: Body.toJson(Body.plain(letter)),
    headers,
    native: Body.plainFacts(letter.native),
    firstPublished: Age.iso(Metadata.publishedAt(metadata)) ?? null,
    redrives,
    ...(operation === undefined ? {} : { operation }),
    origin: origin === undefined ? null : { ...origin, at: time(origin.at) },
    history: history.map((attempt) => ({ ...attempt, at: time(attempt.at) }))
  }
}

export const header = ["id", "from", "reason", "error", "attempts", "redrives", "age"]

/** The titles of columns that are cut on a narrow terminal. */
export const cut = ["error"]

export const row = (letter: DeadLetters.DeadLetter, now: number): ReadonlyArray<string> => {
  const { id, origin, redrives } = letter
  return [
    Printable.line(id),
    Printable.line(origin?.queue ?? "-"),
    origin?.reason ?? "-",
    origin === undefined ? "-" : Printable.line(`${origin.error.name}: ${origin.error.message}`),
    String(origin?.attempts ?? "-"),
    String(redrives),
    Age.show(LetterFilter.since(letter), now)
  ]
}

/** Returns the stack trace of an error, to show below its message. */
const traced = ({ stack = "" }: Metadata.ErrorSummary): ReadonlyArray<string> =>
  stack === "" ? [] : stack.split("\n").map((line) => `           ${Printable.text(line)}`)

/** Shows everything known about a letter, in several lines. */
export const detail = (letter: DeadLetters.DeadLetter): string => {
  const { blocks, fairBy, headers, history, id, key, metadata, operation, origin, redrives } = letter
  const parked = blocks === undefined ? "" : `, parked: ${blocks} ${blocks === 1 ? "message waits" : "messages wait"}`
  const given =
    origin === undefined
      ? "not by Requeue"
      : `${origin.reason}, after ${origin.attempts} ${origin.attempts === 1 ? "attempt" : "attempts"}`
  return [
    `id         ${Printable.line(id)}`,
    ...(key === undefined ? [] : [`key        ${Printable.line(key)}${parked}`]),
    ...(fairBy === undefined ? [] : [`fairBy     ${Printable.line(fairBy)}`]),
    `from       ${Printable.line(origin?.queue ?? "unknown")}`,
    `reason     ${given}${origin === undefined ? "" : `, at ${time(origin.at)}`}`,
    ...(origin === undefined
      ? []
      : [`error      ${Printable.line(`${origin.error.name}: ${origin.error.message}`)}`, ...traced(origin.error)]),
    `published  ${Age.iso(Metadata.publishedAt(metadata)) ?? "unknown"}`,
    `redrives   ${redrives}`,
    ...(operation === undefined ? [] : [`redriven   by operation ${operation}`]),
    ...Object.entries(headers).map(([name, value]) => `header     ${Printable.line(`${name}: ${value}`)}`),
    ...history.map(({ at, attempt, delay, error }) => {
      return `attempt ${attempt}  ${time(at)}  ${Printable.line(error)}; again in ${Delay.format(delay)}`
    }),
    "",
    Body.show(Body.plain(letter))
  ].join("\n")
}
