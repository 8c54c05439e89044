/** The conditions of connections to nsqd, by the world's rates. */
import type { Rates } from "../Scenario.ts"
import { type Break, type Caller, type Conditions, silence } from "../servers/nsq/Conditions.ts"
import type { World } from "../world/World.ts"

/** The longest time for which an nsqd does not read from a connection, in milliseconds. */
const slowest = 20_000

/** The probability that an end notices at once that a connection is broken. */
const quick = 0.6

const isPublish = (name: string): boolean => name.endsWith("PUB")

const host = (target: string): string => target.replace("http://", "").split(":")[0]!

/** Makes the conditions of a connection, or of a request. The caller's purpose begins with its process. */
export const of =
  ({ draw, fault, latency }: World) =>
  ({ clientId, purpose }: Caller, target: string): Conditions => {
    const place = `${purpose} ${host(target)}`
    const isRequest = clientId === undefined
    const happens = (...kinds: ReadonlyArray<keyof Rates>): boolean => kinds.some((kind) => fault(kind, place))
    return {
      takes: (way) => {
        const isLate = (isRequest || way === "up") && fault("late", place)
        // Most often for a moment only.
        return latency(place) + (isLate ? slowest * draw.unit(`${place} slow`) ** 3 : 0)
      },
      breaks: (way) =>
        isRequest ? happens("cut", way === "up" ? "lostRequest" : "lostAnswer") : fault("cut", `${place} ${way}`),
      how: (): Break => {
        const silent = latency(place)
        const isQuick = (end: string): boolean => draw.chance(`${place} ${end} quick`, quick)
        return {
          silent,
          client: isQuick("process") ? silent + latency(place) : undefined,
          server: silent + (isQuick("broker") ? latency(place) : draw.between(`${place} broker notices`, 0, silence))
        }
      },
      fails: ({ name }) => {
        if (!isPublish(name)) return undefined
        if (fault("lostRequest", place)) return "lostRequest"
        if (fault("busy", place)) return "refused"
        return fault("lostAnswer", place) ? "lostAnswer" : undefined
      }
    }
  }
