package bifocal.cli.command;

/**
 * A command whose input describes requests: the JSON of its refusals has the key {@code request},
 * null when no single request is at fault.
 */
public interface NamesRequests {}
