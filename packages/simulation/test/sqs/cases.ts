/** The cases that the SQS adapter has besides those of the suite. */
import type { Case } from "@requeue/conformance"
import { cases as arrival } from "./cases/arrival.ts"
import { cases as batches } from "./cases/batches.ts"
import { cases as decoding } from "./cases/decoding.ts"
import { cases as fifo } from "./cases/fifo.ts"

export const cases: ReadonlyArray<Case.Case> = [...arrival, ...batches, ...decoding, ...fifo]
