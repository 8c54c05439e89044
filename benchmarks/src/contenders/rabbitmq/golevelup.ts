/** golevelup's connection, the base of its decorators for NestJS. It parses JSON by default. */
import { AmqpConnection } from "@golevelup/nestjs-rabbitmq"
import type { Workload } from "../../Contender.ts"
import type * as Jobs from "./jobs.ts"

export const consume: Workload<Jobs.Consume> = async ({ body, prefetch, queue, url }, meter) => {
  const connection = new AmqpConnection({
    uri: url,
    prefetchCount: prefetch,
    connectionInitOptions: { wait: true },
    ...(body === "bytes" ? { deserializer: (message: Buffer) => message } : {})
  })
  await connection.init()
  await connection.createSubscriber(async () => meter.tick(), { queue, createQueueIfNotExists: false }, "handler")
  await meter.done
  await connection.close()
}
