import type { Tool } from '../../core/tool.ts'
import type { View } from '../../core/view.ts'
import { browseTool, listTool } from './list.ts'
import { readTool } from './read.ts'
import { searchTool } from './search.ts'

export { connectorTools } from './connector.ts'

/**
 * Reading as tools, for hosts that have no resources: the same view, so that nobody sees more or less. Everything is of one
 * request; they hold no state.
 */
export function resourceTools(view: View): readonly Tool[] {
  return [listTool(view), browseTool(view), readTool(view), searchTool(view)]
}
