/** The letters of a redrive that are dead letters again, each counted once. Their metadata identifies them. */
import type { Metadata } from "@requeue/core/port"
import * as Operation from "./operation.ts"

export interface Returned {
  /** Whether this call published the message, or the copy that it comes from. */
  readonly isOurs: (message: Metadata.Metadata) => boolean
  /** Records a letter from a dead-letter queue if this call has published it. */
  readonly see: (letter: Metadata.Metadata) => void
  /** Returns the number of letters of a stage that have come back; stages count from 1. */
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
      // A message with two copies counts once.
      const key = JSON.stringify([id, firstPublished, redrives])
      stages.set(stage, (stages.get(stage) ?? new Set()).add(key))
    },
    of: (stage) => stages.get(stage)?.size ?? 0,
    all: () => [...stages.values()].reduce((sum, { size }) => sum + size, 0)
  }
}
