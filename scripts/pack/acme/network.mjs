/** A program whose broker does not run. */
import { adapter } from "@requeue/adapter-NAME"
import { connect } from "@requeue/core/promise"

const urls = { amqp: "amqp://127.0.0.1:1", sqs: "sqs://key:secret@127.0.0.1:1?region=eu-west-1" }
try {
  await using requeue = await connect(urls[adapter.schemes[0]], { adapters: [adapter], logLevel: "None" })
  await requeue.send("orders", 1)
} catch (error) {
  console.log(error.reason)
}
