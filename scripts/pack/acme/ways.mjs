/** Every way to a third-party adapter: each prints its name, and the received order. */
import { adapter } from "@acme/requeue-broker"
import { loadConfig } from "@requeue/config"
import { connect } from "@requeue/core/promise"

const configured = async (options) => (await loadConfig(options)).connect()

const ways = {
  "by its scheme": () => connect("acme:"),
  "by its name": () => connect({ url: "acme:", adapter: "@acme/requeue-broker" }),
  "handed over": () => connect("acme:", { adapters: [adapter] }),
  "handed over, with an option": () => connect({ url: "acme:", order: "order-9" }, { adapters: [adapter] }),
  "named in a file": () => configured({ file: "named.yaml" }),
  "held by a module": () => configured({ file: "held.mjs" }),
  "handed over to a file": () => configured({ file: "plain.yaml", adapters: [adapter] })
}

for (const [way, open] of Object.entries(ways)) {
  const requeue = await open()
  const came = Promise.withResolvers()
  await requeue.consume("orders", {}, async ({ id }) => came.resolve(id))
  console.log(`${way}: ${await came.promise}`)
  await requeue.close()
}
