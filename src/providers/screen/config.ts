import { defined } from '../../core/kit/object.ts'
import * as z from '../../schema/builder.ts'
import { duration, durationFrom, sizeUpTo, text } from '../../schema/fields.ts'
import { programEffects } from '../../schema/shapes.ts'
import { defineSourceSchema, type OpenSource } from '../source.ts'

const screenShape = {
  displays: z
    .array(text)
    .min(1)
    .max(16)
    .optionalKey(
      'The displays, by their names in the system: ":0" (X11), "1" (macOS, Windows). They are listed as display1, display2 and so on. By default the display that the variable DISPLAY names, or the first.',
    ),
  program: text.optionalKey(
    'The absolute path of the program that captures a display: maim or scrot on X11. By default screencapture on macOS, else the first one on the PATH.',
  ),
  interval: duration.optionalKey('Minimum time between two pictures. An earlier request waits. By default "1s".'),
  timeout: durationFrom('100ms').optionalKey('Time-out for taking a picture. By default "10s".'),
  maxBytes: sizeUpTo('64MiB').optionalKey('Maximum size of a picture. By default "16MiB", at most "64MiB".'),
}

export const source = defineSourceSchema({
  about: 'The displays of this machine: a screenshot of each.',
  shape: { ...screenShape, cache: z.never().optionalKey('Not allowed: screenshots are never cached.') },
  effects: {
    always: () => [{ kind: 'reads', what: 'what the displays of this machine show' }],
    options: { program: programEffects, displays: 'none', interval: 'none', timeout: 'none', maxBytes: 'none' },
  },
})

export const open: OpenSource<typeof source> = async ({ displays, program, interval, timeout, maxBytes }) => {
  const { screen } = await import('./index.ts')
  return screen(defined({ displays, program, intervalMs: interval, timeoutMs: timeout, maxBytes }))
}
