/**
 * Publish commands.
 *
 * | rule | source in https://github.com/nsqio/nsq/blob/v1.3.0/nsqd/protocol_v2.go |
 * | --- | --- |
 * | a topic is made by the first publish to it, and by an MPUB that is refused | `PUB`, `MPUB` |
 * | an MPUB is checked as a whole before any of its messages is stored | `readMPUB` |
 * | DPUB with too long a delay is refused, unlike REQ | `DPUB` |
 * | empty messages are refused | `PUB`, `readMPUB` |
 */
import { type Command, messagesOf } from "./Commands.ts"
import * as Names from "./Names.ts"
import type { Daemon } from "./Daemon.ts"
import { Fatal, millisOf } from "./Fatal.ts"

const nameOf = (command: string, name = ""): string => {
  if (Names.isValid(name)) return name
  // nsqd repeats the code for MPUB.
  const code = command === "MPUB" ? "E_BAD_TOPIC E_BAD_TOPIC" : "E_BAD_TOPIC"
  throw new Fatal(`${code} ${command} topic name ${JSON.stringify(name)} is not valid`)
}

/** Returns the only message of a command. */
const single = ({ flags: { maxMsgSize } }: Daemon, command: string, body: Buffer): Buffer => {
  if (body.length === 0) throw new Fatal(`E_BAD_MESSAGE ${command} invalid message body size 0`)
  if (body.length > maxMsgSize) {
    throw new Fatal(`E_BAD_MESSAGE ${command} message too big ${body.length} > ${maxMsgSize}`)
  }
  return body
}

const several = ({ flags }: Daemon, body: Buffer): ReadonlyArray<Buffer> => {
  if (body.length === 0) throw new Fatal("E_BAD_BODY MPUB invalid body size 0")
  if (body.length > flags.maxBodySize) {
    throw new Fatal(`E_BAD_BODY MPUB body too big ${body.length} > ${flags.maxBodySize}`)
  }
  const messages = messagesOf(body, flags)
  if ("error" in messages) throw new Fatal(messages.error)
  return messages
}

const delayOf = ({ flags: { maxReqTimeout } }: Daemon, text = ""): number => {
  const millis = millisOf("DPUB", text)
  if (millis >= 0 && millis <= maxReqTimeout) return millis
  throw new Fatal(`E_INVALID DPUB timeout ${text} out of range 0-${maxReqTimeout}`)
}

/** Carries out a publish command of a client. Returns the response. */
export const run = (daemon: Daemon, { args, body, name }: Command, clientId: string): string => {
  const [topic, defer] = args
  const checked = nameOf(name, topic)
  const delay = name === "DPUB" ? delayOf(daemon, defer) : 0
  if (name === "MPUB") daemon.topic(checked)
  const messages = name === "MPUB" ? several(daemon, body) : [single(daemon, name, body)]
  const trouble = daemon.trouble()
  if (trouble !== undefined) throw new Fatal(`E_${name}_FAILED ${name} failed ${trouble}`)
  for (const message of messages) {
    const refusal = daemon.refuses(name, checked, message)
    if (refusal !== undefined) throw new Fatal(refusal)
  }
  for (const message of messages) daemon.topic(checked).put(message, delay, clientId)
  return "OK"
}
