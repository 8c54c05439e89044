/**
 * The identity of a redrive. The metadata of its copies, and of their retries and dead letters, has it, and identifies
 * letters that have come back.
 */
import { OptionKind } from "@requeue/core/port"

export interface Operation {
  /** The id in reports and events. Calls that continue the same work have the same id. */
  readonly id: string
  /** The id of one call of the operation. For an edit it begins with `edit.`. */
  readonly run: string
}

/** The kind of a valid id. */
export const idKind = OptionKind.matching('1 to 32 letters, digits, ".", "_" or "-"', /^[\w.-]{1,32}$/)

const random = (length: number): string => crypto.randomUUID().replaceAll("-", "").slice(0, length)

/** Makes an operation with the given id, or with a new one. `before` is the beginning of the call's id. */
export const make = (id = random(12), before = ""): Operation => ({ id, run: `${before}${random(6)}` })

/** Returns the text for the metadata of each message that the operation publishes. `stage` counts from 1. */
export const tag = ({ id, run }: Operation, stage: number): string => `${id}:${run}:${stage}`

/** Whether any call of the operation has published the copy that has this text. */
export const isOf = (text: string | undefined, { id }: Operation): boolean => text?.startsWith(`${id}:`) === true

/** Returns the stage in which this call published the copy that has this text; `undefined` if it did not. */
export const stageOf = (text: string | undefined, { id, run }: Operation): number | undefined => {
  const before = `${id}:${run}:`
  return text?.startsWith(before) === true ? Number(text.slice(before.length)) : undefined
}
