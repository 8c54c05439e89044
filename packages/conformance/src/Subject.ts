/** The consumer, producer and dead letters under test: Requeue's own, unless a mutant replaces them. */
import { Consumer, Producer } from "@requeue/core"
import { DeadLetters } from "@requeue/operations"
import * as Context from "effect/Context"

/** The functions that cases use to start consumers and producers, and to read dead letters. */
export interface Shape {
  readonly start: typeof Consumer.start
  readonly startBatch: typeof Consumer.startBatch
  readonly makeProducer: typeof Producer.make
  readonly makeDeadLetters: typeof DeadLetters.make
  readonly findDeadLetters: typeof DeadLetters.foundFor
}

/** The consumer, producer and dead letters of Requeue itself. */
export const original: Shape = {
  start: Consumer.start,
  startBatch: Consumer.startBatch,
  makeProducer: Producer.make,
  makeDeadLetters: DeadLetters.make,
  findDeadLetters: DeadLetters.foundFor
}

/** The consumer, producer and dead letters under test. Default: {@link original}. */
export const Subject = Context.Reference<Shape>("@requeue/conformance/Subject", { defaultValue: () => original })
