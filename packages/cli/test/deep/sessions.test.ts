/** The terminal sessions of every page of the documentation. */
import { replay } from "../real/sessions.ts"

replay(() => true)
