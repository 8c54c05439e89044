/** Fields of forms. */
import * as Effect from "effect/Effect"
import { Refusal } from "../refusal.ts"

/** The refusal of a field. */
export const wrong = (detail: string, remedy: string) => new Refusal({ status: 400, detail, remedy })

/** A number from a field, as people write it; `undefined` where it is empty. */
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
        wrong(`${name} must be a ${kind} number from ${min} to ${max}`, "Nothing was done. Go back, and change it")
      )
}
