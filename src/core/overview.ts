/** URI of the overview that a hikidashi server lists first. It describes the server, and is not a document of it. */
export const overviewUri = 'hikidashi://overview'
