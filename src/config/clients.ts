import { z } from 'zod'
import { globs, text } from './fields.ts'
import { refusal } from './words.ts'

const names = z.union([text, z.array(text).min(1)], {
  error: refusal(
    'This is not the name of a client.',
    'Write one such as "Zed", or an array of them; "*" stands for anything.',
  ),
})

const profile = z.strictObject({
  name: names.describe(
    'What the client calls itself, such as "Zed" or "cursor-*": "*" stands for anything, capitals make no difference.',
  ),
  version: names.exactOptional().describe('Its version, likewise: "1.*". By default any.'),
  tools: z
    .boolean()
    .exactOptional()
    .describe('Whether it is given the tools that read resources. By default as `clients.tools` says.'),
  list: z
    .strictObject({
      mounts: z
        .array(text)
        .min(1)
        .exactOptional()
        .describe('The addresses of the mounts that it is shown. By default all.'),
      match: globs.exactOptional().describe('The paths that it is shown. By default all.'),
      most: z.int().min(1).exactOptional().describe('How many resources it is listed at most. By default all.'),
    })
    .exactOptional()
    .describe(
      'What it is shown where things are listed, browsed and completed. It is no access rule: by its URI it can read the rest too.',
    ),
})

export const clients = z.strictObject({
  tools: z
    .enum(['auto', 'on', 'off'])
    .exactOptional()
    .describe(
      'Who is given the tools list_resources, browse_directory, read_resource, search_resources and assemble_context: "on", everybody; "off", nobody but the explorer; "auto", hosts that are known to have no resources for the model, and the explorer. By default "auto".',
    ),
  profiles: z
    .array(profile)
    .exactOptional()
    .describe('What some clients are given, by what they call themselves. The first that matches counts.'),
})

export type ClientsConfig = z.output<typeof clients>
