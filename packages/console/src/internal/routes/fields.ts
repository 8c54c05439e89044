/** Fields of forms, and forms that are shown again. */
import * as Effect from "effect/Effect"
import type { Problem } from "../pages/parts.ts"
import { Refusal } from "../refusal.ts"
import type { Page, Reply } from "../visit.ts"

/** Makes the refusal of a form. `field` is the name of the wrong field. */
export const wrong = (detail: string, remedy: string, field?: string) =>
  new Refusal({ status: 400, detail, remedy, ...(field === undefined ? {} : { field }) })

/** Makes the refusal of a purge whose typed name is not the name of the queue. */
export const wrongName = (queue: string) => wrong(`the typed name is not ${queue}`, "Nothing was removed", "name")

/** Answers with a page that shows the form again if one of its fields is wrong. */
export const orAgain = <E>(
  reply: Effect.Effect<Reply, E | Refusal>,
  typed: URLSearchParams,
  page: (problem: Problem) => Page
): Effect.Effect<Reply, E | Refusal> =>
  Effect.catchIf(
    reply,
    (error): error is Refusal & { readonly field: string } => error instanceof Refusal && error.field !== undefined,
    ({ detail: text, field }) => Effect.succeed({ page: page({ field, text, typed }), status: 400 as const })
  )

/** Reads a number from a field; `undefined` if the field is empty. */
export const numberOf = (
  fields: URLSearchParams,
  name: string,
  kind: "whole" | "decimal",
  min: number,
  max: number
) => {
  const text = (fields.get(name) ?? "").trim()
  const value = Number(text)
  if (text === "") return Effect.undefined
  return (kind === "whole" ? /^\d+$/ : /^\d+(?:\.\d+)?$/).test(text) && value >= min && value <= max
    ? Effect.succeed(value)
    : Effect.fail(
        wrong(`${name} must be a ${kind} number from ${min} to ${max}`, "Nothing was done. Go back and change it", name)
      )
}
