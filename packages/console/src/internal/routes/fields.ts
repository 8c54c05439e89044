/** Fields of forms. */
import * as Effect from "effect/Effect"
import { Refusal } from "../refusal.ts"

/** The refusal of a field. */
export const wrong = (detail: string, remedy: string) => new Refusal({ status: 400, detail, remedy })

/** A number from a field; `undefined` where it is empty. */
export const numberOf = (fields: URLSearchParams, name: string, min: number, max: number) => {
  const text = (fields.get(name) ?? "").trim()
  const value = Number(text)
  if (text === "") return Effect.undefined
  return value >= min && value <= max
    ? Effect.succeed(value)
    : Effect.fail(wrong(`${name} must be a number from ${min} to ${max}`, "Nothing was done. Go back, and change it"))
}
