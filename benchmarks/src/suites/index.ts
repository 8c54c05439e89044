/** Every suite, in the order in which they run. A new one is a file and a row. */
import type { Suite } from "../Suite.ts"
import { growth, memory } from "./memory.ts"
import { micro } from "./micro.ts"
import { nsqConsume, nsqPublish, nsqRetry } from "./nsq.ts"
import { guard, rabbitmqConsume } from "./rabbitmqConsume.ts"
import { rabbitmqGrowth, rabbitmqSoak } from "./rabbitmqGrowth.ts"
import { rabbitmqPublish } from "./rabbitmqPublish.ts"
import { rabbitmqDelays, rabbitmqFailing, rabbitmqRetry } from "./rabbitmqRetry.ts"
import { sqsConsume, sqsRetry } from "./sqs.ts"
import { startup } from "./startup.ts"

export const suites: ReadonlyArray<Suite> = [
  micro,
  startup,
  memory,
  growth,
  rabbitmqConsume,
  rabbitmqPublish,
  rabbitmqRetry,
  rabbitmqFailing,
  rabbitmqDelays,
  rabbitmqGrowth,
  rabbitmqSoak,
  nsqConsume,
  nsqPublish,
  nsqRetry,
  sqsConsume,
  sqsRetry,
  guard
]
