/** The world as the surroundings of a simulated server, and of the clients of a process. */
import type * as Host from "../servers/Host.ts"
import { epoch, type Machine } from "./Machine.ts"
import type { World } from "./World.ts"

/** The surroundings of a server: true time. */
export const ofServer = ({ after, draw, now }: World): Host.Host => ({
  now: () => Math.floor(epoch + now()),
  after: (delay, run) => {
    const due = after(delay, run)
    return () => void (due.run = undefined)
  },
  random: draw.unit
})

/** The surroundings of what runs in a process: its clock, while it lives. */
export const ofProcess = ({ draw }: World, { after, name, wallClock }: Machine): Host.Host => ({
  now: wallClock,
  after: (delay, run) => {
    const due = after(delay, run)
    return () => void (due.run = undefined)
  },
  random: (place) => draw.unit(`${name} ${place}`)
})
