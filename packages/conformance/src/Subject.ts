/**
 * The consumer and producer under test: Requeue's own, unless somebody replaces them, as the mutants do.
 */
import { Consumer, Producer } from "@requeue/core"
import * as Context from "effect/Context"

/** The functions that cases start consumers and producers with. */
export interface Shape {
  readonly start: typeof Consumer.start
  readonly startBatch: typeof Consumer.startBatch
  readonly makeProducer: typeof Producer.make
}

/** Requeue's own consumer and producer. */
export const original: Shape = {
  start: Consumer.start,
  startBatch: Consumer.startBatch,
  makeProducer: Producer.make
}

/** The consumer and producer under test. Default: {@link original}. */
export const Subject = Context.Reference<Shape>("@requeue/conformance/Subject", { defaultValue: () => original })
