import { defined } from '../../core/kit/defined.ts'
import type { OpenSource } from '../source.ts'
import type { source } from './config.ts'

/** Opens the displays of this machine. */
export const open: OpenSource<typeof source> = async ({ displays, program, interval, timeout, maxBytes }) => {
  const { screen } = await import('./index.ts')
  return screen(defined({ displays, program, interval, timeoutMs: timeout, maxBytes }))
}
