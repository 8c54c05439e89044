/** Names of queues: those of the world, and those on SQS. */
import { named } from "../Scenario.ts"

/** The name of a queue on SQS. */
export const onSqs = (queue: string, isFifo: boolean): string => `${queue.replaceAll(".", "-")}${isFifo ? ".fifo" : ""}`

/** The world's name of a queue on SQS. */
export const inWorld = (name: string): string => named(name).replaceAll("-", ".")
