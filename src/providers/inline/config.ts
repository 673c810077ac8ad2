import * as z from '../../schema/builder.ts'
import { refusal } from '../../schema/refusals.ts'
import { defineSource } from '../source.ts'
import { describedShape } from '../web/config.ts'

const base64 = z.string().regex(/^[A-Za-z0-9+/\s]*={0,2}\s*$/, {
  error: refusal('This is not base64.', 'Write the bytes in base64 (RFC 4648), with "+" and "/".'),
})

const body = {
  text: z.string().exactOptional().describe('The content, as text.'),
  base64: base64.exactOptional().describe('The content, as bytes in base64.'),
}

const { mimeType, priority, audience, ...names } = describedShape

/** The options of a mount whose provider is `inline`. */
export const inlineShape = {
  ...body,
  mimeType,
  priority,
  audience,
  resources: z
    .record(z.string(), z.strictObject({ ...body, ...names, mimeType, priority, audience }))
    .exactOptional()
    .describe('Several resources, by their paths below the address, instead of a single resource at the address.'),
}

export const source = defineSource({
  about: 'Small resources that the configuration holds itself.',
  shape: inlineShape,
  // The provider itself checks the resources. It is loaded only for mounts of this kind.
  findings: async (_, { address }, options) =>
    options === undefined ? [] : (await import('./open.ts')).inlineFindings(address, options),
  effects: {
    options: {
      text: 'none',
      base64: 'none',
      mimeType: 'none',
      priority: 'none',
      audience: 'none',
      resources: 'none',
    },
  },
})
