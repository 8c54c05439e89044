/** A program that becomes one file, without packages next to it. */
import { adapter } from "@acme/requeue-broker"
import { connect } from "@requeue/core/promise"

const requeue = await connect("acme:", { adapters: [adapter] })
const came = Promise.withResolvers()
await requeue.consume("orders", {}, async ({ id }) => came.resolve(id))
console.log(await came.promise)
await requeue.close()
