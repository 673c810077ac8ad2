import { connect } from 'hikidashi/client'
import { assemble } from 'hikidashi/context'

const view = await connect({ url: 'http://127.0.0.1:8787/mcp' })
const context = await assemble(view, { query: 'how cursors are sealed', budget: 8000, now: Date.now() })
console.log(context.text, context.tokens, context.items, context.omitted)
