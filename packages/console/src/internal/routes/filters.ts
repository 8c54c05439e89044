/** Filters of letters in addresses and forms, with the names and texts of the CLI's flags. */
import { Metadata } from "@requeue/core/port"
import { LetterFilter } from "@requeue/operations"
import * as Effect from "effect/Effect"
import type { Refusal } from "../refusal.ts"
import { wrong } from "./fields.ts"

/** A filter; `search` has its fields in an address. */
export interface Asked {
  readonly filter: LetterFilter.LetterFilter
  readonly search: Readonly<Record<string, string>>
}

/** Reads one part of a filter. An error is a text that begins with "must". */
type Read = (text: string) => LetterFilter.LetterFilter | string

const isReason = (text: string): text is Metadata.Reason => Metadata.reasons.some((reason) => reason === text)

const parts: Readonly<Record<string, Read>> = {
  error: (error) => ({ error }),
  reason: (text) => (isReason(text) ? { reason: [text] } : `must be one of ${Metadata.reasons.join(", ")}`),
  origin: (origin) => ({ origin }),
  since: (text) => {
    const since = LetterFilter.momentOf(text)
    return since === undefined ? "must be a time such as 2026-03-14T15:09Z, or a duration such as 2h" : { since }
  },
  older: (text) => {
    const age = LetterFilter.momentOf(text)
    return age === undefined || "time" in age ? "must be a duration such as 2h or 30d" : { olderThan: age.ago }
  },
  header: (header) => LetterFilter.headerProblem(header) ?? { header: [header] },
  id: (id) => LetterFilter.idProblem(id) ?? { id: [id] }
}

/** The largest number of characters in a part of a filter. */
const longest = 200

/** Returns the filter that the fields describe; `undefined` without a filter. */
export const of = (fields: URLSearchParams): Effect.Effect<Asked | undefined, Refusal> => {
  let filter: LetterFilter.LetterFilter = {}
  const search: Record<string, string> = {}
  for (const [name, read] of Object.entries(parts)) {
    const text = (fields.get(name) ?? "").trim()
    if (text === "") continue
    const part = text.length > longest ? `must have at most ${longest} characters` : read(text)
    if (typeof part === "string") {
      return Effect.fail(wrong(`the filter ${name} ${part}`, "Nothing was done. Go back and change it", name))
    }
    filter = { ...filter, ...part }
    search[name] = text
  }
  return Effect.succeed(Object.keys(search).length === 0 ? undefined : { filter, search })
}
