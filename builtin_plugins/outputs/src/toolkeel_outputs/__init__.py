"""toolkeel-outputs: Keeps large tool results whole and hands out previews; read_output reads on."""
