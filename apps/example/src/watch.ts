/** Keeps the screen up to date until something is over. */
import { setTimeout as sleep } from "node:timers/promises"
import { line, lines, type Snapshot } from "./progress.ts"
import type { Screen } from "./screen.ts"

/** Milliseconds between two pictures. */
const every = 100

export const watch = async (screen: Screen, snapshot: () => Snapshot, isOver: () => boolean): Promise<void> => {
  for (;;) {
    // Asked before the picture is made, so that the last picture shows the end.
    const over = isOver()
    const now = snapshot()
    screen.draw(
      () => lines(now, screen.paint),
      () => line(now),
      over
    )
    if (over) return
    await sleep(every)
  }
}
