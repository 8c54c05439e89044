/** rhea, an AMQP 1.0 client: RabbitMQ 4 speaks that on the same port. https://www.rabbitmq.com/docs/amqp#address-v2 */
import rhea, { type Connection, type EventContext } from "rhea"
import type { Workload } from "../../Contender.ts"
import type * as Jobs from "./jobs.ts"

const open = (url: string): Connection => {
  const { hostname, password, port, username } = new URL(url)
  const connection = rhea.create_container().connect({
    host: hostname,
    port: Number(port),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password)
  })
  connection.on("connection_error", ({ error }: EventContext) => {
    throw error as Error
  })
  return connection
}

const addressOf = (queue: string): string => `/queues/${encodeURIComponent(queue)}`

export const consume: Workload<Jobs.Consume> = async ({ body, prefetch, queue, url }, meter) => {
  const connection = open(url)
  const handler = async (_body: unknown): Promise<void> => {}
  const receiver = connection.open_receiver({
    source: { address: addressOf(queue) },
    credit_window: prefetch,
    autoaccept: false
  })
  receiver.on("receiver_open", () => meter.begin())
  receiver.on("message", ({ delivery, message }: EventContext) => {
    const content = (message!.body as { readonly content: Buffer }).content
    handler(body === "json" ? JSON.parse(content.toString()) : content).then(
      () => {
        delivery!.accept()
        meter.tick()
      },
      () => delivery!.release()
    )
  })
  await meter.done
  connection.close()
}

export const publish: Workload<Jobs.Publish> = async ({ inFlight, messages, queue, size, url, warmUp }, meter) => {
  const connection = open(url)
  const sender = connection.open_sender({ target: { address: addressOf(queue) } })
  const body = rhea.message.data_section(Buffer.alloc(size, 120))
  let left = messages + warmUp
  const next = (): void => {
    if (left-- <= 0) return
    const message_id = crypto.randomUUID()
    sender.send({
      durable: true,
      message_id,
      content_type: "application/octet-stream",
      creation_time: new Date(),
      body
    })
  }
  sender.once("sendable", () => {
    meter.begin()
    for (let n = 0; n < inFlight; n++) next()
  })
  sender.on("accepted", () => {
    meter.tick()
    next()
  })
  for (const refused of ["rejected", "released", "modified"]) {
    sender.on(refused, () => {
      throw new Error(`a message was ${refused}`)
    })
  }
  await meter.done
  connection.close()
}
