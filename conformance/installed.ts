import type { Command } from './suite.ts'
import { findTool, installTools, type Tool } from './tools.ts'

/** Returns the result of `find`. If a tool is missing, installs all tools and tries again. Exits if it is still missing. */
export function installed<T extends object>(find: () => T | { readonly missing: string }): T {
  const found = find()
  if (!('missing' in found)) return found
  process.stderr.write(`${found.missing}. Installing it now…\n`)
  const again = installTools() ? find() : found
  if (!('missing' in again)) return again
  process.stderr.write(`The tools cannot start: ${again.missing}.\n`)
  process.exit(1)
}

/** Returns the command that runs a tool. Installs the tool if it is missing. */
export const commandOf = (tool: Tool): Command => installed(() => findTool(tool)).command
