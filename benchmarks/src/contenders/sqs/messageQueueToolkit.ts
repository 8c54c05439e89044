/** message-queue-toolkit: schemas, handlers by message type, on sqs-consumer. Always JSON, one message at a time. */
import { AbstractSqsConsumer } from "@message-queue-toolkit/sqs"
import type { Workload } from "../../Contender.ts"
import type { Meter } from "../../Meter.ts"
import { logger, type Message, options, services } from "../messageQueueToolkit.ts"
import * as Calls from "./calls.ts"
import { connect } from "./client.ts"
import type * as Jobs from "./jobs.ts"

class ThingConsumer extends AbstractSqsConsumer<Message, undefined> {
  constructor({ polls, queueUrl, url }: Jobs.Consume, meter: Meter) {
    super(
      { ...services, logger, sqsClient: connect(url) },
      {
        ...options(meter),
        locatorConfig: { queueUrl },
        concurrentConsumersAmount: polls,
        consumerOverrides: { batchSize: 10, waitTimeSeconds: 1 }
      },
      undefined
    )
  }
}

export const consume: Workload<Jobs.Consume> = async (job, meter) => {
  const calls = Calls.count()
  await new ThingConsumer(job, meter).start()
  await meter.done
  calls.report(meter, job.messages + job.warmUp)
}
