/** The terminal sessions of the documentation and of test/sessions, but for the one that test/real replays. */
import { isJourney, replay } from "../real/sessions.ts"

replay((path, broker) => !isJourney(path, broker))
