import { defined } from '../core/kit/defined.ts'
import type { EmbeddedText } from '../core/tool.ts'
import type { Resource } from '../core/view.ts'
import type { Annotations, ContentBlock } from './types.ts'

/** A content block in the types of the core. */
type Piece = { readonly text: string } | { readonly resource: EmbeddedText } | { readonly link: Resource }

/** Content blocks in the form of tools and prompts, from which the server writes each revision of the protocol. */
export function piecesOf(blocks: readonly ContentBlock[]): readonly Piece[] {
  return blocks.map((block) => {
    if (block.type === 'text') return { text: block.text }
    if (block.type === 'resource') return { resource: { ...block.resource, ...factsOf(block.annotations) } }
    const { type: _, annotations, ...link } = block
    return { link: { ...link, ...factsOf(annotations) } }
  })
}

function factsOf({ audience, priority, lastModified }: Annotations = {}) {
  return {
    ...defined({ audience, priority }),
    ...(lastModified === undefined ? {} : { modified: Date.parse(lastModified) }),
  }
}
