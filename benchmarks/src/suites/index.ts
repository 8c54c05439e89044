/** Every suite, in the order in which they run. A new one is a file and a row. */
import type { Suite } from "../Suite.ts"
import { batches, growth, memory } from "./memory.ts"
import { micro } from "./micro.ts"
import { nsqConsume, nsqPublish, nsqRetry, nsqWindows } from "./nsq.ts"
import { peers } from "./peers.ts"
import { postgres } from "./postgres.ts"
import { guard, rabbitmqCold, rabbitmqConsume, rabbitmqWindows } from "./rabbitmqConsume.ts"
import { rabbitmqGrowth, rabbitmqSoak } from "./rabbitmqGrowth.ts"
import { rabbitmqPublish, rabbitmqQueues } from "./rabbitmqPublish.ts"
import { rabbitmqDelays, rabbitmqFailing, rabbitmqRetry, rabbitmqSteady } from "./rabbitmqRetry.ts"
import { scalings } from "./scaling.ts"
import { sqsConsume, sqsRetry } from "./sqs.ts"
import { startup } from "./startup.ts"
import { telemetry, telemetryOff } from "./telemetry.ts"
import { nsqTransit, peersTransit, rabbitmqTransit, sqsTransit } from "./transit.ts"

export const suites: ReadonlyArray<Suite> = [
  micro,
  startup,
  memory,
  batches,
  growth,
  telemetryOff,
  telemetry,
  rabbitmqConsume,
  rabbitmqWindows,
  rabbitmqCold,
  rabbitmqPublish,
  rabbitmqQueues,
  rabbitmqRetry,
  rabbitmqFailing,
  rabbitmqSteady,
  rabbitmqDelays,
  rabbitmqTransit,
  rabbitmqGrowth,
  rabbitmqSoak,
  nsqConsume,
  nsqWindows,
  nsqPublish,
  nsqRetry,
  nsqTransit,
  sqsConsume,
  sqsRetry,
  sqsTransit,
  postgres,
  peers,
  peersTransit,
  ...scalings,
  guard
]

/** Whether the pages show all cases of this suite in one table. */
export const inOneTable = (name: string): boolean => suites.find((suite) => suite.name === name)?.inOneTable === true
