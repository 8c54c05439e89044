/** The letters of a redrive that are dead letters again, each counted once, and what may be such. Told by metadata alone. */
import type { Metadata } from "@requeue/core/port"
import * as Operation from "./operation.ts"

export interface Returned {
  /** Whether this call has published the copy that the message is, or comes from. */
  readonly isOurs: (message: Metadata.Metadata) => boolean
  /** Adds a letter that was seen in a dead-letter queue, if it has come back from this call. */
  readonly see: (letter: Metadata.Metadata) => void
  /** The letters of a stage that have come back; stages count from 1. */
  readonly of: (stage: number) => number
  readonly all: () => number
}

export const make = (operation: Operation.Operation): Returned => {
  const stages = new Map<number, Set<string>>()
  return {
    isOurs: (message) => Operation.stageOf(message.operation, operation) !== undefined,
    see: ({ firstPublished, id, operation: text, redrives }) => {
      const stage = Operation.stageOf(text, operation)
      if (stage === undefined) return
      // A message of which there are two copies has come back once.
      const key = JSON.stringify([id, firstPublished, redrives])
      stages.set(stage, (stages.get(stage) ?? new Set()).add(key))
    },
    of: (stage) => stages.get(stage)?.size ?? 0,
    all: () => [...stages.values()].reduce((sum, { size }) => sum + size, 0)
  }
}
