/**
 * Answers of SQS, as far as they are of the types that the SDK promises. The SDK does not look, and a foreign producer, or
 * whatever stands in front of SQS, decides. Pure.
 */
import { OptionKind } from "@requeue/core/port"

/** An answer without what its call was made for. */
class UnreadableAnswer extends Error {
  override readonly name = "UnreadableAnswer"
}

const fieldOf = (answer: unknown, name: string): unknown =>
  OptionKind.isObject(answer) ? Reflect.get(answer, name) : undefined

/** A text of an answer; throws where it has none. */
export const textIn = (answer: unknown, name: string): string => {
  const value = fieldOf(answer, name)
  if (typeof value === "string") return value
  throw new UnreadableAnswer(`SQS answered no ${name}`)
}

/** The texts of a record of an answer. Some servers answer numbers, and the SDK lets them through. */
export const textsIn = (answer: unknown, name: string): Readonly<Record<string, string>> => {
  const record = fieldOf(answer, name)
  const entries: ReadonlyArray<[string, unknown]> = OptionKind.isObject(record) ? Object.entries(record) : []
  const texts = entries.filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
  return Object.fromEntries(texts.map(([name, value]) => [name, String(value)]))
}

/** A list of an answer. */
const listIn = (answer: unknown, name: string): ReadonlyArray<unknown> => {
  const list = fieldOf(answer, name)
  return Array.isArray(list) ? list : []
}

/** The texts of a list of an answer. */
export const textListIn = (answer: unknown, name: string): ReadonlyArray<string> =>
  listIn(answer, name).filter((each) => typeof each === "string")

/** The objects of a list of an answer. */
export const objectsIn = (answer: unknown, name: string): ReadonlyArray<object> =>
  listIn(answer, name).filter(OptionKind.isObject)
